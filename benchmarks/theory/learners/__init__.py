"""Certificates of linear learners and classifiers, measured."""
