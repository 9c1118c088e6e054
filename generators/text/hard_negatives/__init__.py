"""Hard negatives: captions made false by one small edit, as in CREPE and SugarCrepe."""
