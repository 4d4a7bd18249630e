"""What people wait for, each job beside a named limit or peer in the same run."""
