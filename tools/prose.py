"""Reading the prose of a page: numbers that a cell should have computed, and syntax that only MyST knows."""

import re
from dataclasses import dataclass

# Units whose numbers are counted, traced or measured, never known beforehand. "32 banks", "4 bytes" or
# "128-byte line" are properties of the machine and may be written.
COMPUTED_UNITS = (
    r"(?:-|\s)?way\b",
    r"\s*%",
    r"\s*per\s?cent\b",
    r"\s*(?:x|×)(?![\w×])(?!\s*\d)",
    r"\s*times\b",
    r"[-\s](?:\w+\s)?(?:wavefronts?|sectors?|requests?|transactions?|replays?|conflicts?|cycles?|clocks?)\b",
    r"\s*(?:[KMGT]B|[KMG]iB|bytes?|GFLOP|TFLOP|FLOP)\s?/\s?(?:s|clock|cycle)\b",
    r"\s*(?:ns|us|µs|μs|ms|(?:nano|micro|milli)?seconds?)\b",
)
NUMBER_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "sixteen": 16, "thirty-two": 32, "sixty-four": 64,
}  # fmt: skip
_NUMBER = r"(?<![\w.,^_/-])(?P<number>\d+(?:[.,]\d+)*|" + "|".join(NUMBER_WORDS) + r")"
_COMPUTED = re.compile(_NUMBER + "(?P<unit>" + "|".join(COMPUTED_UNITS) + ")", re.IGNORECASE)

# Parts of a page that state nothing in the author's voice: code, mathematics, quotations, directives' heads.
_NOT_PROSE = (
    re.compile(r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)`*\s*$", re.MULTILINE | re.DOTALL),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^\s*>.*$", re.MULTILINE),
    re.compile(r"^\s*:{3,}.*$", re.MULTILINE),
    re.compile(r"(`+)[^`].*?\1", re.DOTALL),
    re.compile(r"(?<![\\\w])\$[^$\n]+\$"),
    re.compile(r"(?<=\])\([^)]*\)"),
    re.compile(r"https?://\S+"),
    re.compile(r"[\"“][^\"”]{0,300}[\"”]"),
)
_SENTENCE_END = re.compile(r"(?<=[.!?:])[\s*_)]+(?=[A-Z*_(\[0-9])|\n\s*\n|\n\s*(?=[-*|#]|\d+\.)")

_MYST = (
    re.compile(r"^\s*(?:`{3,}|:{3,})\{[\w:-]+\}.*$", re.MULTILINE),
    re.compile(r"\{[\w:+-]+\}`[^`]*`"),
    re.compile(r"^\([\w:-]+\)=\s*$", re.MULTILINE),
    re.compile(r"\{\{.*?\}\}"),
    re.compile(r"^%\s.*$", re.MULTILINE),
)


@dataclass(frozen=True)
class ComputedNumber:
    """A number with a computed unit, found in prose."""

    text: str
    value: float
    sentence: str


def computed_numbers(markdown: str) -> list[ComputedNumber]:
    """The numbers in prose that a cell should compute: a number followed by one of `COMPUTED_UNITS`.

    Code, mathematics, link targets, quotations (in double quotes or after `>`) and questions are not
    searched: they claim nothing. Nor is "one", since "one word per bank" states the rule.

    >>> [found.text for found in computed_numbers("The column read costs 32 wavefronts. Is it 8 wavefronts?")]
    ['32 wavefronts']
    """
    found = []
    for sentence in _sentences(markdown):
        if sentence.rstrip("*_) ").endswith("?"):
            continue
        for match in _COMPUTED.finditer(sentence):
            number = match["number"].lower()
            value = float(NUMBER_WORDS[number] if number in NUMBER_WORDS else number.replace(",", ""))
            found.append(ComputedNumber(match.group(), value, sentence))
    return found


def myst_syntax(markdown: str) -> list[str]:
    """Directives, roles, labels, substitutions and comments that CommonMark does not know.

    >>> myst_syntax("See {term}`bank`.")
    ['{term}`bank`']
    """
    return [match.group().strip() for pattern in _MYST for match in pattern.finditer(markdown)]


def _sentences(markdown: str) -> list[str]:
    for pattern in _NOT_PROSE:
        markdown = pattern.sub(" … ", markdown)
    return [" ".join(part.split()) for part in _SENTENCE_END.split(markdown) if part.strip()]
