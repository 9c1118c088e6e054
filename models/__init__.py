"""Image-text models behind one small interface, for filters and evaluation; without Beam."""
