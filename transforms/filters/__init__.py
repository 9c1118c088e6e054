"""What is measured on an image or a pair of images, and which values are refused."""
