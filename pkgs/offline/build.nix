# The builder under everything here: the host's bash and tools, which bootstrap lets into Nix's sandbox.
#
#   mkDerivation { name; buildCommand; ... } -> derivation
#   runCommand name env buildCommand -> derivation       as in nixpkgs
#   hostTool { name; program ? name; package ? name } -> derivation with bin/PROGRAM, which is the host's
#
# `nativeBuildInputs`, `meta` and `passthru` mean what they mean in nixpkgs; other attributes are environment variables.
{ system }:
let
  hostPath = "/usr/bin:/bin";

  mkDerivation =
    {
      name,
      buildCommand,
      nativeBuildInputs ? [ ],
      meta ? { },
      passthru ? { },
      ...
    }@arguments:
    derivation (
      removeAttrs arguments [
        "nativeBuildInputs"
        "meta"
        "passthru"
      ]
      // {
        inherit name system buildCommand;
        builder = "/bin/bash";
        args = [
          "-euo"
          "pipefail"
          "-c"
          ''eval "$buildCommand"''
        ];
        PATH = builtins.concatStringsSep ":" (
          map (package: "${package}/bin") nativeBuildInputs ++ [ hostPath ]
        );
        HOME = "/homeless-shelter";
      }
    )
    // passthru
    // {
      inherit meta passthru;
    };

  runCommand =
    name: env: buildCommand:
    mkDerivation (env // { inherit name buildCommand; });

  hostTool =
    {
      name,
      program ? name,
      package ? name,
    }:
    runCommand name { meta.mainProgram = program; } ''
      tool=$(type -P ${program}) || {
        echo "${program} is not on this machine: install your distribution's package ${package}" >&2
        exit 1
      }
      mkdir -p $out/bin
      ln -s "$tool" $out/bin/${program}
    '';
in
{
  inherit mkDerivation runCommand hostTool;
}
