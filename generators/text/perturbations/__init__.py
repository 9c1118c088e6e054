"""The 13 caption perturbations of Hendriksen et al., as published and corrected.

Start at `catalogue`, which lists them; `record` has the modes and the reasons for not applying one.
"""
