"""What a log looks like over time: plots as SVG and the markup around them, for the service's pages and for audits."""
