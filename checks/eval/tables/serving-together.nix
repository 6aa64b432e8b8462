# What two instances of the serving module may not have in common, and what the module only warns about.
{ lib }:
let
  inherit (import ../instances.nix { inherit lib; })
    at
    evaluate
    like
    one
    ;

  pair = name: a: b: sentences: {
    name = "refused: ${name}";
    expr =
      (evaluate {
        instances = {
          a = like a;
          b = like b;
        };
      }).failing;
    expected = map (sentence: "services.tenstorrent-serving.instances.b.${sentence}") sentences;
  };
  warned = name: instance: sentences: {
    name = "warned: ${name}";
    expr = (one instance).warnings;
    expected = map (sentence: "${at}.${sentence}") sentences;
  };

  onA = {
    cards.ids = [ "blackhole-aa" ];
    port = 1;
  };
  onB = {
    cards.ids = [ "blackhole-bb" ];
    port = 2;
  };
in
{
  values = [
    (pair "nothing of two that share nothing" onA onB [ ])
    (pair "one card for two" onA (onB // { cards.ids = [ "blackhole-AA" ]; }) [
      "cards: [\"/dev/tenstorrent/by-id/blackhole-aa\"] belongs to services.tenstorrent-serving.instances.a as well; a card has one engine."
    ])
    (pair "cards that may be one" onA { port = 2; } [
      "cards.ids: [] against [\"blackhole-aa\"] of services.tenstorrent-serving.instances.a; whether they share a card cannot be known. Name the cards of both."
    ])
    (pair "one port for two" onA (onB // { port = 1; }) [
      "port: 1 is the port of services.tenstorrent-serving.instances.a as well."
    ])
    (pair "one port on all addresses" onA
      (
        onB
        // {
          port = 1;
          address = "0.0.0.0";
        }
      )
      [
        "port: 1 is the port of services.tenstorrent-serving.instances.a as well."
      ]
    )
    (pair "nothing of one port on two addresses" onA (
      onB
      // {
        port = 1;
        address = "127.0.0.2";
      }
    ) [ ])
    (pair "one arm for two" onA (onB // { arm = "a"; }) [
      "arm: \"a\" is the arm of services.tenstorrent-serving.instances.a as well; containers have one name each."
    ])

    (warned "nothing of a good instance" { } [ ])
    (warned "an image that may move" { image = "engine:latest"; } [
      "image: \"engine:latest\" has no digest (@sha256:…), so the tag may name another image tomorrow."
    ])
    (warned "a key that the plugin ignores" { tt.trace_mod = "all"; } [
      "tt.trace_mod: the Tenstorrent plugin ignores keys that it does not know, and this one is not on its list."
    ])
    (warned "secrets in the store" { environmentFile = "${builtins.storeDir}/x"; } [
      "environmentFile: \"${builtins.storeDir}/x\" is in the Nix store, which everyone can read."
    ])
  ];
}
