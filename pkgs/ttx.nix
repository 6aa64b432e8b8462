# ttx, with the arms and pins that it uses when the current folder has none.
{
  lib,
  python3,
  runCommand,
  runtimeShell,
}:
let
  inherit ((lib.importTOML ../python/pyproject.toml).project) version;

  ttstack = python3.pkgs.buildPythonPackage {
    pname = "ttstack";
    inherit version;
    pyproject = true;
    src = lib.fileset.toSource {
      root = ../python;
      fileset = lib.fileset.unions [
        ../python/pyproject.toml
        (lib.fileset.fileFilter (file: !file.hasExt "pyc") ../python/ttstack)
      ];
    };
    build-system = [ python3.pkgs.setuptools ];
    dependencies = [
      python3.pkgs.argcomplete
      python3.pkgs.duckdb
      python3.pkgs.fastjsonschema
      python3.pkgs.jinja2
      python3.pkgs.pygal
      python3.pkgs.rich
      python3.pkgs.tomlkit
    ];
  };

  # An environment, not a wrapped application: ttx starts its helpers as `sys.executable -m ttstack...`, and only an
  # environment's interpreter finds the package.
  env = python3.withPackages (_: [ ttstack ]);

  share = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../arms
      ../pins
    ];
  };
in
runCommand "ttx-${version}"
  {
    passthru = { inherit env ttstack; };
    meta = {
      description = "Serve, try and measure models on Tenstorrent Blackhole cards";
      mainProgram = "ttx";
    };
  }
  ''
    mkdir -p $out/bin $out/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
    ln -s ${share} $out/share/ttstack
    for program in ttx ttx-sim; do
      cat >$out/bin/$program <<EOF
    #!${runtimeShell}
    export TTX_SHARE="\''${TTX_SHARE-$out/share/ttstack}"
    exec ${env}/bin/$program "\$@"
    EOF
      chmod +x $out/bin/$program
    done

    $out/bin/ttx completion bash >$out/share/bash-completion/completions/ttx
    $out/bin/ttx completion zsh >$out/share/zsh/site-functions/_ttx
    $out/bin/ttx completion fish >$out/share/fish/vendor_completions.d/ttx.fish
  ''
