"""The 13 caption perturbations of Hendriksen et al., as published and corrected.

Start at `perturb`; `record` has the names, the modes and the reasons of a refusal.
"""
