"""REPLACE hard positives: rewordings of a caption that stay true where its foil is false."""
