"""Image-text models as judges: whether a caption matches its image and not another."""
