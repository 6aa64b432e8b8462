# What the serving module makes of whole hosts and of single values. Unit texts are in ./golden; after a change that is
# meant, `checks/eval/refresh-golden` writes them anew, and the difference is what a reviewer reads.
{ lib }:
let
  hosts = import ./hosts.nix { inherit lib; };
  functions = import ../../modules/lib { inherit lib; };
  inherit (functions)
    flags
    json
    mesh
    numbers
    ;

  goldenUnit = file: lib.splitString "\n" (builtins.readFile (./golden + "/${file}"));
  unitRows = lib.concatLists (
    lib.mapAttrsToList (
      host: result:
      lib.mapAttrsToList (unit: lines: {
        name = "the unit ${unit} of ${host}";
        expr = lines;
        expected = goldenUnit "${host}.${unit}";
      }) result.units
    ) hosts
  );
  # A golden file whose unit is gone would never be read again.
  files = lib.concatLists (
    lib.mapAttrsToList (host: result: map (unit: "${host}.${unit}") (lib.attrNames result.units)) hosts
  );

  at = "services.tenstorrent-serving.instances";
  noDigest =
    instance: image:
    "${at}.${instance}.image: \"${image}\" has no digest (@sha256:…), so the tag may name another image tomorrow.";

  valueOf = value: flags.render { x = value; };
in
{
  values = unitRows ++ [
    {
      name = "every golden unit is one that is made";
      expr = lib.filter (lib.hasSuffix ".service") (lib.attrNames (builtins.readDir ./golden));
      expected = lib.sort builtins.lessThan files;
    }
    {
      name = "hosts that are refused";
      expr = lib.filterAttrs (_: failing: failing != [ ]) (
        lib.mapAttrs (_: result: result.failing) hosts
      );
      expected.clashes = [
        "${at}.a.mesh: \"P150\" has 1 chips, but ${at}.a.cards.count is 2."
        "${at}.b.cards: [\"/dev/tenstorrent/0\"] belongs to ${at}.a as well; a card has one engine."
        "${at}.b.port: 8000 is the port of ${at}.a as well."
      ];
    }
    {
      name = "warnings";
      expr = lib.filterAttrs (_: warnings: warnings != [ ]) (
        lib.mapAttrs (_: result: result.warnings) hosts
      );
      expected = {
        clashes = map (instance: noDigest instance "registry.example/engine:latest") [
          "a"
          "b"
        ];
        production = [ (noDigest "prod" "tt-serve:current") ];
        production-prefix = [ (noDigest "prod" "tt-serve:current") ];
        secrets-and-overlays = [ (noDigest "dev" "registry.example/engine:nightly") ];
      };
    }
    {
      name = "folders that docker would refuse to bind, were they not made";
      expr = hosts.secrets-and-overlays.tmpfiles ++ hosts.hugging-face-id.tmpfiles;
      expected = [
        "d \"/fast/caches\" 0755 root root -"
        "d \"/fast/caches/jit\" 0755 root root -"
        "d \"/fast/caches/c2ac36f219d275b4\" 0755 4000 4000 -"
        "d \"/fast/caches/jit/dev-tt-metal-0123456789abcdef0123456789abcdef01234567\" 0755 4000 4000 -"
        "d \"/var/cache/tenstorrent\" 0755 root root -"
        "d \"/var/cache/tenstorrent/jit\" 0755 root root -"
        "d \"/var/lib/tenstorrent/hf\" 0755 1000 1000 -"
        "d \"/var/cache/tenstorrent/bbd469cdc770d225\" 0755 1000 1000 -"
        "d \"/var/cache/tenstorrent/jit/hub-nightly-ttnn-0.81.1\" 0755 1000 1000 -"
      ];
    }
    {
      name = "folders with odd names, as tmpfiles.d reads them";
      expr = builtins.head hosts.odd-characters.tmpfiles;
      expected = "d \"/srv/with blank/100%%/$HOME/\\\\n/ä\" 0755 root root -";
    }
    {
      name = "docker and the driver are switched on";
      expr = lib.mapAttrsToList (_: result: result.docker && result.tenstorrent) hosts;
      expected = map (_: true) (lib.attrNames hosts);
    }
    {
      name = "a host without engines is left alone";
      expr =
        let
          evaluation = import ./harness.nix { inherit lib; } [
            ../../modules/tenstorrent-serving.nix
            { services.tenstorrent-serving.instances.off.mesh = "P150"; }
          ];
        in
        {
          inherit (evaluation) failing warnings units;
          docker = evaluation.config.virtualisation.docker.enable;
          inherit (evaluation.config.systemd.tmpfiles) rules;
        };
      expected = {
        failing = [ ];
        warnings = [ ];
        units = { };
        docker = false;
        rules = [ ];
      };
    }
    {
      name = "numbers as %g writes them";
      expr = map numbers.format [
        0
        (0 - 7)
        1.0
        (0 - 0.0)
        0.95
        0.1
        123.456
        99999.5
        (0 - 0.001)
        1.0e-4
        1.0e-5
        1.5e-7
        0.99999999
        1.0e20
      ];
      expected = [
        "0"
        "-7"
        "1"
        "0"
        "0.95"
        "0.1"
        "123.456"
        "99999.5"
        "-0.001"
        "0.0001"
        "1e-05"
        "1.5e-07"
        "1"
        "100000000000000000000"
      ];
    }
    {
      name = "numbers that six digits hold, and that they do not";
      expr = map numbers.isExact [
        0.123456
        1.5e-300
        1.0e300
        0.1234567
        100000.25
      ];
      expected = [
        true
        true
        true
        false
        false
      ];
    }
    {
      name = "canonical JSON";
      expr = json.render {
        b = [
          1.0
          2.5
          true
          "é\n\t\"\\"
        ];
        a.c = { };
        B = lib.concatStrings functions.characters.controls;
      };
      expected = ''{"B":"\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f","a":{"c":{}},"b":[1,2.5,true,"é\n\t\"\\"]}'';
    }
    {
      name = "flags";
      expr = map valueOf [
        true
        false
        null
        "text"
        ""
        "-1"
        (0 - 1)
        0.5
        [ ]
        [
          "a"
          "-b"
          2
        ]
        { k = 1; }
      ];
      expected = [
        [ "--x" ]
        [ "--no-x" ]
        [ ]
        [
          "--x"
          "text"
        ]
        [ "--x=" ]
        [ "--x=-1" ]
        [ "--x=-1" ]
        [
          "--x"
          "0.5"
        ]
        [ ]
        [
          "--x"
          "a"
          "--x=-b"
          "--x"
          "2"
        ]
        [
          "--x"
          "{\"k\":1}"
        ]
      ];
    }
    {
      name = "flags are sorted by their bytes";
      expr = flags.render {
        b = true;
        a-z = true;
        a = true;
        B = true;
      };
      expected = [
        "--B"
        "--a"
        "--a-z"
        "--b"
      ];
    }
    {
      name = "chips of meshes";
      expr = map mesh.chipsOf [
        "P150"
        "P150x2"
        "P150X2"
        "(2,4)"
        "(0,4)"
        "(2, 4)"
        ""
      ];
      expected = [
        1
        2
        null
        8
        null
        null
        null
      ];
    }
  ];
}
