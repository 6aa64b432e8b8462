"""Who may use which card now."""
