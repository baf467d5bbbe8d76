"""One spelling for everything that is signed or hashed. Pure: no clock, no network, no database."""
