# Declaring options.
lib:
let
  dotted = lib.concatMapStringsSep "." lib.escapeNixIdentifier;
in
{
  mkOption = args: args // { _type = "option"; };
  isOption = value: value._type or null == "option";

  mkEnableOption =
    what:
    lib.mkOption {
      type = lib.types.bool;
      default = false;
      example = true;
      description = "Whether to enable ${what}.";
    };

  mkPackageOption =
    pkgs: name:
    { }:
    let
      path = lib.toList name;
    in
    lib.mkOption {
      type = lib.types.package;
      default = lib.attrByPath path (throw "${dotted path} cannot be found in pkgs") pkgs;
      defaultText = lib.literalExpression "pkgs.${dotted path}";
      description = "The ${lib.last path} package to use.";
    };

  literalExpression = text: {
    _type = "literalExpression";
    inherit text;
  };
}
