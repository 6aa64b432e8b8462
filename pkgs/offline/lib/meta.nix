# The programs of packages.
lib: {
  getExe' =
    package: program:
    assert lib.assertMsg (lib.isDerivation package)
      "lib.meta.getExe': The first argument is of type ${lib.typeOf package}, but it should be a derivation instead.";
    "${package.bin or package.out or package}/bin/${program}";
}
