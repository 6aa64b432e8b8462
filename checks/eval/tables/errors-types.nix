# What the module system refuses, and in which words: values of the wrong type, and contradictions.
{ lib }:
let
  inherit (lib) types;
  inherit (import ../evaluate.nix { inherit lib; })
    one
    settings
    ;
  tool = {
    type = "derivation";
    name = "tool-1";
    outPath = "/nix/store/00000000000000000000000000000000-tool-1";
  };
in
{
  errors = [
    {
      name = "a string where a number is wanted";
      expr = one types.int [ "8000" ];
      message = "A definition for option `a.b' is not of type `signed integer'. Definition values:\n- In `defined-1.nix': \"8000\"";
    }
    {
      name = "of several definitions only the wrong ones are shown";
      expr = one types.str [
        "fine"
        1
        null
      ];
      message = "is not of type `string'. Definition values:\n- In `defined-3.nix': null\n- In `defined-2.nix': 1";
    }
    {
      name = "a port out of range";
      expr = one types.port [ 65536 ];
      message = "A definition for option `a.b' is not of type `16 bit unsigned integer; between 0 and 65535 (both inclusive)'. Definition values:\n- In `defined-1.nix': 65536";
    }
    {
      name = "a number that must be positive";
      expr = one types.ints.positive [ 0 ];
      message = "is not of type `positive integer, meaning >0'";
    }
    {
      name = "an item of a list";
      expr = one (types.listOf types.str) [
        [ "a" ]
        [
          "b"
          2
        ]
      ];
      message = "A definition for option `a.b.\"[definition 1-entry 2]\"' is not of type `string'. Definition values:\n- In `defined-2.nix': 2";
    }
    {
      name = "not a list at all";
      expr = one (types.listOf types.str) [ "a" ];
      message = "A definition for option `a.b' is not of type `list of string'. TypeError: Definition values:\n- In `defined-1.nix': \"a\"";
    }
    {
      name = "an empty list where one item is the least";
      expr = one (types.nonEmptyListOf types.str) [ [ ] ];
      message = "is not of type `non-empty (list of string)'. TypeError: Definition values:\n- In `defined-1.nix': [ ]";
    }
    {
      name = "an attribute of a set";
      expr = one (types.attrsOf types.bool) [ { "c.d" = "yes"; } ];
      message = "A definition for option `a.b.\"c.d\"' is not of type `boolean'";
    }
    {
      name = "not a set at all";
      expr = one (types.attrsOf types.bool) [ [ ] ];
      message = "is not of type `attribute set of boolean'. TypeError: Definition values:";
    }
    {
      name = "neither of two types";
      expr = one (types.oneOf [
        types.int
        types.str
      ]) [ true ];
      message = "TypeError: The option `a.b` is neither a value of type `signed integer` nor `string`, Definition values:\n- In `defined-1.nix': true";
    }
    {
      name = "null and not null";
      expr = one (types.nullOr types.int) [
        1
        null
      ];
      message = "The option `a.b` is defined both null and not null, in `defined-2.nix' and `defined-1.nix'.";
    }
    {
      name = "neither null nor the type";
      expr = one (types.nullOr types.int) [ "1" ];
      message = "is not of type `null or signed integer'";
    }
    {
      name = "not a submodule";
      expr = one (types.submodule { }) [ 1 ];
      message = "is not of type `submodule'. TypeError: Definition values:";
    }
    {
      name = "a wrong value in an option of a submodule";
      expr = one settings [ { port = "80"; } ];
      message = "A definition for option `a.b.port' is not of type `16 bit unsigned integer; between 0 and 65535 (both inclusive)'. Definition values:\n- In `defined-1.nix': \"80\"";
    }
    {
      name = "a wrong value among free-form settings";
      expr = one settings [ { flag.deep = x: x; } ];
      message = "A definition for option `a.b.flag.deep' is not of type `JSON value'";
    }
    {
      name = "free-form settings that are not a set";
      expr = one settings [ 3 ];
      message = "is not of type `open submodule of attribute set of (JSON value)'";
    }
    {
      name = "definitions that contradict each other";
      expr = one types.str [
        "one"
        "two"
      ];
      message = "The option `a.b' has conflicting definition values:\n- In `defined-2.nix': \"two\"\n- In `defined-1.nix': \"one\"\nUse `lib.mkForce value` or `lib.mkDefault value` to change the priority on any of these definitions.";
    }
    {
      name = "contradictions inside free-form settings";
      expr = one settings [
        { flag = 1; }
        { flag = 2; }
      ];
      message = "The option `a.b.flag' has conflicting definition values:";
    }
    {
      name = "two packages";
      expr = one (lib.mkPackageOption { } "tool" { }).type [
        {
          type = "derivation";
          name = "one";
        }
        {
          type = "derivation";
          name = "two";
        }
      ];
      message = "The option `a.b' is defined multiple times while it's expected to be unique.\n\nDefinition values:\n- In `defined-2.nix': <derivation two>\n- In `defined-1.nix': <derivation one>";
    }
    {
      name = "kinds that an option without a type cannot merge";
      expr = one types.unspecified [
        1
        "1"
      ];
      message = "Cannot merge definitions of `a.b'. Definition values:";
    }
    {
      name = "something else than a package";
      expr = one (lib.mkPackageOption { } "tool" { }).type [ "tool" ];
      message = "A definition for option `a.b' is not of type `package'. Definition values:\n- In `defined-1.nix': \"tool\"";
    }
  ];
}
