"""Which weights are right, and which help a learner: ours and those of peers on real tables."""
