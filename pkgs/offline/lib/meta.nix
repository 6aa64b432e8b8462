# Packages: their programs and licences.
lib:
let
  nameOf = package: package.pname or package.name;
in
{
  getBin = package: package.bin or package.out or package;

  getExe' =
    package: program:
    assert lib.assertMsg (lib.isDerivation package)
      "lib.meta.getExe': The first argument is of type ${lib.typeOf package}, but it should be a derivation instead.";
    "${lib.getBin package}/bin/${program}";

  getExe =
    package:
    lib.getExe' package (
      package.meta.mainProgram
        or (throw "${nameOf package} does not name its program: set meta.mainProgram, or use getExe'")
    );

  licenses.asl20 = {
    shortName = "asl20";
    fullName = "Apache License 2.0";
    spdxId = "Apache-2.0";
    url = "https://spdx.org/licenses/Apache-2.0.html";
    free = true;
    redistributable = true;
    deprecated = false;
  };
  platforms.linux = [
    "x86_64-linux"
    "aarch64-linux"
  ];
}
