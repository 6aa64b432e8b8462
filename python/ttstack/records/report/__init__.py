"""Reports: what many records come to, as one page for a browser or as Markdown for a pull request."""
