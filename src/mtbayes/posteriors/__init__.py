"""Families of ensembling distributions q, one file each."""
