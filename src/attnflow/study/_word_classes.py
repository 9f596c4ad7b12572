"""Classes of English words by lists: function words are few, so what is on no list is a content word.

For another language, or finer classes, `audit` takes a function from a word to a class in the place of this one.
"""

from __future__ import annotations

_LISTS = {
    "negation": "not no never none nothing nobody neither nor n't without cannot hardly barely",
    "determiner": "a an the this that these those each every some any all both another such what which whose",
    "pronoun": """i you he she it we they me him her us them my your his its our their mine yours hers ours theirs myself
        yourself himself herself itself ourselves themselves who whom one someone something everyone everything anyone anything""",
    "preposition": """of in to for on with at by from about into over after under between through during before against
        among around behind beyond near above below across along upon within toward towards off out up down as like than per""",
    "conjunction": "and or but so yet if because although though while when where until unless since whether",
    "auxiliary": """be am is are was were been being have has had having do does did doing will would can could shall should
        may might must 's 're 've 'll 'd 'm ca wo""",
    "intensifier": "very too really quite rather so just only even still also much more most less least almost",
}
_CLASS_OF = {word: name for name, text in reversed(_LISTS.items()) for word in text.split()}

CLASSES = (*_LISTS, "number", "punctuation", "content word")


def word_class(word: str) -> str:
    """The class of a word: by the lists, by its letters, else a content word."""
    plain = word.lower().strip()
    if plain in _CLASS_OF:
        return _CLASS_OF[plain]
    if plain.endswith("n't"):
        return "negation"
    if any(letter.isdigit() for letter in plain):
        return "number"
    if not any(letter.isalpha() for letter in plain):
        return "punctuation"
    return "content word"
