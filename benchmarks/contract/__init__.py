"""What a fit and a diagnosis cost, against an older commit."""
