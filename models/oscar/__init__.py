"""OSCAR: a BERT that reads a caption, the tags of detected objects and their region features."""
