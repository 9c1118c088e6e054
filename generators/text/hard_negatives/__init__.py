"""Hard negatives: captions made false by one small edit, in the sense of CREPE and SugarCrepe."""
