"""Arm + Pin + Model + cards -> Launch; Launch -> docker argv, ExecStart, unit text, and back."""
