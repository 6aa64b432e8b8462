# What the types of the serving module's options refuse, in the words of nixpkgs' lib.
{ lib }:
let
  inherit (import ../instances.nix { inherit lib; }) at evaluate good;
  unitsOf = instance: lib.attrValues (evaluate { instances.e = instance; }).units;

  nest =
    path: value:
    if path == [ ] then value else { ${builtins.head path} = nest (builtins.tail path) value; };
  mistyped = option: value: message: {
    name = "type: ${option}";
    expr = unitsOf (
      lib.mkMerge [
        good
        (nest (lib.splitString "." option) value)
      ]
    );
    message = "`${at}.${option}' ${message}";
  };
in
{
  errors = [
    (mistyped "port" "8000"
      "is not of type `16 bit unsigned integer; between 0 and 65535 (both inclusive)'"
    )
    (mistyped "cards.count" 0 "is not of type `positive integer, meaning >0'")
    (mistyped "cards.ids" "blackhole-aa" "is not of type `list of string'")
    (mistyped "environment.A" 1 "is not of type `string'")
    (mistyped "settings.max-model-len" (x: x) "is not of type `null or JSON value'")
    (mistyped "settings.dtype" 16 "is not of type `null or string'")
    (mistyped "stopGraceSec" "2min" "is not of type `positive integer, meaning >0'")
    (mistyped "modle" { } "does not exist")
    {
      name = "an instance without an image";
      expr = unitsOf (removeAttrs good [ "image" ]);
      message = "The option `${at}.image' was accessed but has no value defined. Try setting the option.";
    }
  ];
}
