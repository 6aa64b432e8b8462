# The name of a tensor cache: docs/reference/launch.md, "Cache key".
{ lib, json }:
{
  model,
  revision,
  mesh,
  dtype,
  optimizations,
  format,
  env,
}:
lib.substring 0 16 (
  builtins.hashString "sha256" (
    json.render {
      version = 1;
      inherit
        model
        revision
        mesh
        dtype
        optimizations
        format
        env
        ;
    }
  )
)
