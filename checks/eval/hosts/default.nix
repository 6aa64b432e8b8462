# Host configurations that the checks evaluate: { name = [ module ... ]; }. Those with a folder of their name in ../golden
# have their unit texts compared; all of them are held against NixOS by ../../against-nixos.
{
  production = [ ../../../modules/prod.nix ];
  production-prefix = [ ../../../modules/prod-prefix.nix ];
  two-single-cards = [ ./two-single-cards.nix ];
  secrets-and-overlays = [ ./secrets-and-overlays.nix ];
  hugging-face-id = [ ./hugging-face-id.nix ];
  clashes = [ ./clashes.nix ];
  odd-characters = [ ./odd-characters.nix ];
}
