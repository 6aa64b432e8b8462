"""What was asked: arms, pins and models as data; load, validate, edit."""
