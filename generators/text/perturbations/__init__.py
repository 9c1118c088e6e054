"""The 13 caption perturbations of Hendriksen et al., as published and corrected: `catalogue`."""
