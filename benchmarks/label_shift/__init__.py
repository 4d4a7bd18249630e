"""How LabelShiftWeights behaves on real tables with simulated shifts, and what it costs."""
