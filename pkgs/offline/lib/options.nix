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
    {
      default ? name,
      extraDescription ? "",
    }:
    let
      path = lib.toList default;
    in
    lib.mkOption {
      type = lib.types.package;
      default = lib.attrByPath path (throw "${dotted path} cannot be found in pkgs") pkgs;
      defaultText = lib.literalExpression "pkgs.${dotted path}";
      description =
        "The ${lib.last (lib.toList name)} package to use."
        + lib.optionalString (extraDescription != "") " ${extraDescription}";
    };

  literalExpression = text: {
    _type = "literalExpression";
    inherit text;
  };
  literalMD = text: {
    _type = "literalMD";
    inherit text;
  };
}
