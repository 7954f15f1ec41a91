"""Search that finds ``minimize`` on pages that say minimise, and the reverse."""

from __future__ import annotations

import re
from pathlib import Path

import sphinx.search
from sphinx.search.en import SearchEnglish

# What becomes American before the stem is taken, in Python and in the browser alike.
_ENDINGS = r"is(e|es|ed|er|ers|ing|ation|ations)$"
_OUR = r"([bil])our(s|ed|ing|al|ally|able)?$"
_EXCEPT = ("noise", "rise", "wise", "otherwise", "precise", "exercise", "promise")
_EXCEPT += ("raise", "raises", "raised", "raising", "arise", "arises", "your", "hour")

_JAVASCRIPT = """
var EnglishOnly = EnglishStemmer;
window.Stemmer = function () {
  var english = new EnglishOnly();
  var kept = new Set(%s);
  this.stemWord = function (word) {
    var lower = word.toLowerCase();
    if (!kept.has(lower)) {
      lower = lower.replace(/%s/, "iz$1").replace(/%s/, "$1or$2");
    }
    return english.stemWord(lower);
  };
};
"""


def american(word: str) -> str:
    r"""A word as Americans spell it.

    Args:
        word: In lower case.

    Returns:
        ``minimize`` of ``minimise``, ``behavior`` of ``behaviour``; others unchanged.
    """
    if word in _EXCEPT:
        return word
    return re.sub(_OUR, r"\1or\2", re.sub(_ENDINGS, r"iz\1", word))


class BothSpellings(SearchEnglish):
    """English, in which both spellings are one word."""

    js_stemmer_rawcode = ""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        folder = Path(sphinx.search.__file__).parent / "minified-js"
        files = ("base-stemmer.js", "english-stemmer.js")
        own = _JAVASCRIPT % (list(_EXCEPT), _ENDINGS, _OUR)
        self.js_stemmer_code = "\n".join(
            [*((folder / file).read_text() for file in files), own]
        )

    def stem(self, word: str) -> str:
        return super().stem(american(word.lower()))
