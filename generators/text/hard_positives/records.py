"""Why a record has no hard positive, and what corrected mode repairs."""

REFUSALS: dict[str, str] = {
    "negative_equals_positive": "The negative says what the caption says: nothing can tell them.",
    "foil_not_in_lexicon": "The words that the negative changed are no entry of the lexicon.",
    "negative_not_clear": "The words of the negative may be true of the image as well: 'beige' and "
    "'white', 'serving' and 'wearing'.",
    "foil_not_reworded": "No rule rewords what the negative changed.",
    "fixed_expression": "The foiled word is part of an expression: 'in front of', 'red wine'.",
    "repeated_word": "The foiled word appears twice in a row, and one of them would stay.",
    "weak_replacement": "The only entry is a weak synonym, and those are switched off.",
    "negative_is_synonym": "The negative exchanges words for synonyms, so it is true as well.",
    "hard_positive_equals_negative": "The hard positive says what the negative says: one is wrong.",
    "hard_positive_equals_caption": "The hard positive says what the caption says, word for word.",
    "duplicate": "The image has the same caption with the same negative already.",
    "negative_true_elsewhere": "The negative is a true caption of the same image elsewhere.",
    "hard_positive_false_elsewhere": "The hard positive is a negative of the same image elsewhere.",
}
"""The closed list of reasons why a record has no hard positive, each in one sentence."""

REPAIRS: dict[str, str] = {
    "case": "A word in capitals, as Visual Genome writes its commonest predicates, in lower case.",
    "spacing": "Spaces at the ends or more than one between words taken out.",
    "article": "'a' or 'an' made to agree with the word behind it.",
    "restored_article": "An article that the negative lost with the foiled words put back.",
}
"""The closed list of repairs that corrected mode makes to the source's captions."""
