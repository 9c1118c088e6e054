"""Which of several drawings of one pair is the best, by what models and measures say of each."""
