# Functions for texts, files and programs.
{ lib }:
let
  tool = {
    type = "derivation";
    name = "tool-1";
    outPath = "/nix/store/00000000000000000000000000000000-tool-1";
  };
in
{
  values = [
    {
      name = "texts";
      expr = {
        joined = [
          (lib.concatStrings [
            "a"
            "b"
          ])
          (lib.concatStringsSep ", " [
            "a"
            "b"
          ])
          (lib.concatMapStringsSep ":" toString [
            1
            2
          ])
        ];
        prefix = map (lib.hasPrefix "ab") [
          "abc"
          "a"
          "cab"
          ""
        ];
        suffix = map (lib.hasSuffix ".nix") [
          "a.nix"
          ".nix"
          "nix"
          "a.nixx"
          ""
        ];
        infix = map (lib.hasInfix "a.[") [
          "xa.[y"
          "xab[y"
          ""
        ];
        emptyParts = [
          (lib.hasPrefix "" "a")
          (lib.hasSuffix "" "a")
          (lib.hasInfix "" "a")
        ];
        cut = map (lib.removeSuffix ".toml") [
          "a.toml"
          "a.toml.toml"
          "a"
          ".toml"
        ];
        split = [
          (lib.splitString "." "a.b..c")
          (lib.splitString "::" "a:b::c")
          (lib.splitString "\\" "a\\b")
          (lib.splitString "." "")
        ];
        optional = lib.optionalString false "a" + lib.optionalString true "b";
        lower = lib.toLower "ÄBC-xYz[";
        length = lib.stringLength "aä";
        part = [
          (lib.substring 1 2 "abcd")
          (lib.substring 2 (-1) "abcd")
          (lib.substring 9 2 "abcd")
        ];
        replaced = lib.replaceStrings [ "a" "b" ] [ "b" "a" ] "aab";
      };
      expected = {
        cut = [
          "a"
          "a.toml"
          "a"
          ""
        ];
        emptyParts = [
          true
          true
          true
        ];
        infix = [
          true
          false
          false
        ];
        joined = [
          "ab"
          "a, b"
          "1:2"
        ];
        length = 3;
        lower = "Äbc-xyz[";
        optional = "b";
        part = [
          "bc"
          "cd"
          ""
        ];
        prefix = [
          true
          false
          false
          false
        ];
        replaced = "bba";
        split = [
          [
            "a"
            "b"
            ""
            "c"
          ]
          [
            "a:b"
            "c"
          ]
          [
            "a"
            "b"
          ]
          [ "" ]
        ];
        suffix = [
          true
          true
          false
          false
          false
        ];
      };
    }
    {
      name = "files and programs";
      expr = {
        toml = lib.importTOML ./example.toml;
        program = lib.getExe' tool "ctl";
        otherOutput = lib.getExe' (tool // { bin = "/bin-output"; }) "ctl";
        text = lib.literalExpression "pkgs.tool";
      };
      expected = {
        otherOutput = "/bin-output/bin/ctl";
        program = "/nix/store/00000000000000000000000000000000-tool-1/bin/ctl";
        text = {
          _type = "literalExpression";
          text = "pkgs.tool";
        };
        toml = {
          number = 1.5;
          table.list = [
            "a"
            true
          ];
        };
      };
    }
  ];
}
