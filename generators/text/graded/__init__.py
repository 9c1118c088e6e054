"""Ladders of edits of a caption: rewordings and false edits, one, two, three ... at a time."""
