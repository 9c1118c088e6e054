"""Plain functions on one element, and the Beam composites that wire them."""
