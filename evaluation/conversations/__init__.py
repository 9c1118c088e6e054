"""Ask multimodal language models which caption belongs to which image, in all four orders."""
