{ lib }: { }
