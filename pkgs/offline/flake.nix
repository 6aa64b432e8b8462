{
  description = "A stand-in for nixpkgs that needs no binary cache: what ttstack uses of it, made of the host's own tools";

  outputs =
    { self }:
    {
      lib = import ./lib // {
        fileset = import ./fileset.nix;
      };
      legacyPackages = builtins.listToAttrs (
        map
          (system: {
            name = system;
            value = import ./. {
              inherit system;
              inherit (self) lib;
            };
          })
          [
            "x86_64-linux"
            "aarch64-linux"
          ]
      );
    };
}
