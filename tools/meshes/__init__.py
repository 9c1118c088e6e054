"""eqforge's own objects: modelled by code, and packed as archives in the form of GSO's."""
