# Python: the distribution's interpreter, with libraries from hash-locked wheels.
#
#   python3                                    -> the interpreter, as bin/python3
#   python3.withPackages (ps: [ ps.rich ... ]) -> environment with bin/python3 and the packages' programs
#   python3.pkgs.NAME                          -> a locked library, or what buildPythonPackage made
#   python3.pkgs.buildPythonPackage { ... }    -> a library from source (PEP 517)
#
# Which Python a host has (3.11 on Debian 12, 3.12 on Ubuntu 24.04, 3.13 on Debian 13) is not visible to pure evaluation.
# python-minor.nix says it; where that says null, one download holds the wheels for all of them, and the builder picks.
{
  lib,
  system,
  mkDerivation,
}:
let
  minor = import ./python-minor.nix;
  minors = if minor == null then "all" else minor;
  locked = builtins.fromJSON (builtins.readFile ./wheels/wheels.json);
  machine = builtins.head (builtins.split "-" system);

  # The lock's own hash is in the name: a changed lock with a forgotten folder hash is downloaded again, and refused.
  wheels =
    group:
    let
      lock = ./wheels + "/${group}.lock";
    in
    mkDerivation {
      name = "python-wheels-${group}-${minors}-${
        builtins.substring 0 8 (builtins.hashFile "sha256" lock)
      }";
      outputHashMode = "recursive";
      outputHashAlgo = "sha256";
      outputHash =
        locked.hashes.${system}.${group}.${minors}
          or (throw "pkgs/offline: there is no lock for Python ${minors}, only for ${
            toString (builtins.attrNames locked.hashes.${system}.${group})
          }");
      # How this network is reached is the machine's business.
      impureEnvVars = [
        "http_proxy"
        "https_proxy"
        "no_proxy"
        "HTTP_PROXY"
        "HTTPS_PROXY"
        "NO_PROXY"
        "ALL_PROXY"
        "PIP_INDEX_URL"
        "PIP_CERT"
        "SSL_CERT_FILE"
      ];
      buildCommand = ''
        export HOME=$TMPDIR
        sh ${./wheels/fetch.sh} ${lock} ${machine} ${minors} "$out"
      '';
    };

  library = pname: facts: {
    inherit pname;
    inherit (facts) group version;
    dependencies = map (name: pkgs.${name}) facts.requires;
  };

  pkgs = builtins.mapAttrs library locked.packages // {
    inherit buildPythonPackage;
  };

  closure =
    packages:
    map (item: item.package) (
      builtins.genericClosure {
        startSet = map (package: {
          key = package.pname;
          inherit package;
        }) packages;
        operator =
          item:
          map (package: {
            key = package.pname;
            inherit package;
          }) item.package.dependencies;
      }
    );

  environment =
    name: packages:
    let
      all = closure packages;
      fromWheels = builtins.filter (package: package ? group) all;
      built = builtins.filter (package: !(package ? group)) all;
      groups = lib.unique (map (package: package.group) fromWheels);
    in
    mkDerivation {
      inherit name;
      meta.mainProgram = "python3";
      # Each list is one argument: store paths and package names have no spaces.
      wheelDirs = map wheels groups;
      packages = map (package: package.pname) fromWheels;
      sites = built;
      buildCommand = ''
        /usr/bin/python3 -I ${./install.py} "$out" "$wheelDirs" "$packages" "$sites"
      '';
    };

  buildPythonPackage =
    {
      pname,
      version,
      src,
      pyproject,
      build-system,
      dependencies ? [ ],
      meta ? { },
    }:
    assert pyproject;
    mkDerivation {
      name = "python3-${pname}-${version}";
      inherit src meta;
      nativeBuildInputs = [ (environment "python3-build-env" build-system) ];
      passthru = { inherit pname dependencies; };
      buildCommand = ''
        cp -r --no-preserve=mode "$src" source
        cd source
        python3 -c "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])" "$TMPDIR" >build.log 2>&1 || {
          cat build.log >&2
          exit 1
        }
        mkdir "$TMPDIR/wheels"
        mv "$TMPDIR"/*.whl "$TMPDIR/wheels/"
        /usr/bin/python3 -I ${./install.py} "$out" "$TMPDIR/wheels" ${pname} ""
      '';
    };

in
environment "python3" [ ]
// {
  inherit pkgs;
  withPackages = select: environment "python3-env" (select pkgs);
}
