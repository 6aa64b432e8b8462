# dockerTools: images of what is built here.
#
#   streamLayeredImage { name; tag; config; } -> program that writes the image
#   buildLayeredImage { name; tag; config; compressor = "none"; } -> the image
#
# As in nixpkgs, what `config` refers to is in the image, each store path in a layer of its own, and all dates are one.
# But the packages of the stand-in point to the host's /usr, which an image does not have: so every image has a lowest
# layer with the host's Python. It differs from host to host, and with it the image.
{ system, mkDerivation }:
let
  architecture =
    {
      x86_64-linux = "amd64";
      aarch64-linux = "arm64";
    }
    .${system};

  hostPython = mkDerivation {
    name = "host-python";
    buildCommand = ''/usr/bin/python3 -I ${./host_python.py} "$out"'';
  };

  streamLayeredImage =
    {
      name,
      tag,
      config,
    }:
    let
      base = mkDerivation {
        name = "${baseNameOf name}-base.json";
        base = builtins.toJSON {
          inherit
            architecture
            config
            name
            tag
            ;
          created = "1970-01-01T00:00:01Z";
        };
        buildCommand = ''printf %s "$base" >$out'';
      };
    in
    mkDerivation {
      name = "stream-${baseNameOf name}";
      passthru = {
        inherit hostPython;
        imageName = name;
        imageTag = tag;
      };
      # Lists every path of the closure, its deriver and its references, a line each.
      exportReferencesGraph = [
        "closure"
        base
      ];
      buildCommand = ''
        paths=$(grep '^${builtins.storeDir}/' closure | grep -v '[.]drv$' | grep -vxF ${base} | sort -u)
        printf '#!/bin/sh\nexec /usr/bin/python3 -I %s\n' "$(echo ${./image.py} ${base} ${hostPython} $paths)" >$out
        chmod +x $out
      '';
    };

  buildLayeredImage =
    { compressor, ... }@arguments:
    let
      stream = streamLayeredImage (removeAttrs arguments [ "compressor" ]);
    in
    assert compressor == "none";
    mkDerivation {
      name = "${baseNameOf arguments.name}.tar";
      passthru = { inherit (stream) imageName imageTag; };
      buildCommand = "${stream} >$out";
    };
in
{
  inherit buildLayeredImage streamLayeredImage;
}
