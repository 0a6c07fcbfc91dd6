"""Whether every link, picture and anchor of a built book leads somewhere. Usage: book_check.py FOLDER"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

REPOSITORY = "https://github.com/adaparam/adaparam/blob/main/"


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


folder, here = Path(sys.argv[1]).resolve(), Path(__file__).parent.parent
pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
wrong, count = [], 0
for path, page in pages.items():
    # The page that is shown for what is not there stands wherever that was asked for, and the whole book on one page has no
    # links of its own.
    if path.name in ("404.html", "print.html", "toc.html"):
        continue
    for link in page.links:
        count += 1
        url = urlsplit(link)
        if link.startswith(REPOSITORY):
            leads = (here / unquote(url.path.split("/blob/main/")[1])).exists()
        elif url.scheme:
            continue
        else:
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            leads = target.exists() and (
                not url.fragment or target not in pages or unquote(url.fragment) in pages[target].anchors)
        if not leads:
            wrong.append(f"{path.name}: {link} leads nowhere")
print("\n".join(wrong) or f"{len(pages)} pages, {count} links: each leads somewhere")
sys.exit(1 if wrong else 0)
