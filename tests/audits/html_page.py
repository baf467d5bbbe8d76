"""An HTML page as its parts: for tests of what it says and of what it is made of."""

from html.parser import HTMLParser

VOID = {"meta", "link"}


class Page(HTMLParser):
    """What a page is made of; a tag that is not closed in its turn is an error."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.parts: list[tuple[tuple[str, ...], str]] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
            self.parts.append((tuple(self.open), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.parts.append((tuple(self.open), data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError("nothing is commented out")

    def text(self, *within: str) -> str:
        """All text in such elements, one line for each piece."""
        return "\n".join(data for path, data in self.parts if set(within) <= set(path) and data.strip())

    def rows(self, caption: str) -> dict[str, list[str]]:
        """A table by its caption: what names a row, and its other cells."""
        start = next(at for at, (path, data) in enumerate(self.parts) if path[-1] == "caption" and data == caption)
        cells: list[list[str]] = []
        for path, data in self.parts[start + 1 :]:
            if path[-1] == "caption":
                break
            if "tbody" in path and path[-1] == "tr" and not data:
                cells.append([])
            elif "tbody" in path and data.strip():
                cells[-1].append(data)
        return {first: rest for first, *rest in cells}
