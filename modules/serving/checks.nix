# The single rules behind ./asserts.nix; each gives a list of { assertion, message }.
{
  lib,
  functions,
  show,
}:
let
  inherit (builtins)
    isAttrs
    isFloat
    isList
    match
    ;
  inherit (lib)
    any
    attrNames
    concatLists
    concatMap
    elem
    filter
    hasPrefix
    length
    mapAttrsToList
    optional
    unique
    ;
  inherit (functions) characters mesh numbers;

  require = assertion: message: [ { inherit assertion message; } ];
  matches = pattern: text: match pattern text != null;

  isName = matches "[A-Za-z0-9][A-Za-z0-9_.-]*";
  isVariable = matches "[A-Za-z_][A-Za-z0-9_]*";
  isFlag = matches "[A-Za-z0-9][A-Za-z0-9_.-]*";
  isNode = matches "[a-z]+-(0x)?[0-9A-Fa-f]+";
  isImage = matches "[A-Za-z0-9][A-Za-z0-9._:/@-]*";
  isAddress = matches "[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*";
  hasDigest = matches ".*@sha256:[0-9a-f]{64}";

  inherit (import ./known.nix)
    derivedFlags
    derivedVariables
    knownTt
    secretVariables
    ;

  # docker reads --mount as CSV.
  unmountable = [
    ","
    "\""
    characters.delete
  ]
  ++ characters.controls;
  ofPath =
    option: path:
    require (hasPrefix "/" path) "${option}: ${show path} is not an absolute path."
    ++ ofMountable option path;
  ofMountable =
    option: path:
    require (!(characters.containsAny unmountable path))
      "${option}: ${show path} has a comma, a double quote or a control character, which docker's --mount cannot carry.";

  duplicates = list: unique (filter (item: length (filter (other: other == item) list) > 1) list);
  withoutDuplicates =
    option: what: list:
    require (
      duplicates list == [ ]
    ) "${option}: ${show (duplicates list)} named more than once; ${what}.";

  variables =
    option: environment:
    concatMap (
      name:
      require (isVariable name) "${option}: ${show name} is not a name of a variable."
      ++
        require (!(derivedVariables ? ${name}))
          "${option}.${name}: ${show environment.${name}} may not be set; ${derivedVariables.${name} or ""}."
      ++
        require (!(elem name secretVariables))
          "${option}.${name}: a secret's value may not be here, where everyone can read it; name it in `secrets`."
    ) (attrNames environment);

  flags =
    option: settings:
    concatMap (
      name:
      require (isFlag name) "${option}: ${show name} is not a name of a flag; write it without its leading dashes."
      ++ require (
        !(derivedFlags ? ${name}) || settings.${name} == null
      ) "${option}.${name}: ${show settings.${name}} may not be set; ${derivedFlags.${name} or ""}."
    ) (attrNames settings);

  # Numbers that a command line of six significant digits would change.
  inexact =
    option: value:
    if isFloat value then
      optional (!numbers.isExact value) option
    else if isList value then
      concatLists (lib.imap0 (index: inexact "${option}[${toString index}]") value)
    else if isAttrs value then
      concatLists (mapAttrsToList (name: inexact "${option}.${name}") value)
    else
      [ ];
  digits =
    option: value:
    map (path: {
      assertion = false;
      message = "${path}: the number needs more than six significant digits, which would be lost on the command line; write it as text.";
    }) (inexact option value);

  overlay =
    option:
    { source, target }:
    ofPath "${option}.source" source
    ++ ofMountable "${option}.target" target
    ++ require (
      target != "" && !(hasPrefix "/" target) && !(elem ".." (lib.splitString "/" target))
    ) "${option}.target: ${show target} is not a path below metalHome.";

  cards =
    option: instance:
    let
      inherit (instance.cards) count ids;
      chips = mesh.chipsOf instance.mesh;
    in
    require (chips != null)
      "${option}.mesh: ${show instance.mesh} is not a mesh that is known: ${lib.concatStringsSep ", " mesh.names}, or (rows,columns)."
    ++
      require (chips == null || chips == count)
        "${option}.mesh: ${show instance.mesh} has ${toString chips} chips, but ${option}.cards.count is ${toString count}."
    ++
      require (ids == [ ] || length ids == count)
        "${option}.cards.ids: ${show ids} names ${toString (length ids)} cards, but ${option}.cards.count is ${toString count}."
    ++ withoutDuplicates "${option}.cards.ids" "two cards that are one cannot form a mesh" (
      map lib.toLower ids
    )
    ++ concatMap (
      id:
      require (isNode id) "${option}.cards.ids: ${show id} is not a name of /dev/tenstorrent/by-id, such as blackhole-0123456789abcdef; a module cannot look up others."
    ) ids;

  secrets =
    option: instance:
    concatMap (
      name:
      require (isVariable name) "${option}.secrets: ${show name} is not a name of a variable."
      ++ require (
        !(derivedVariables ? ${name})
        && !(instance.environment ? ${name})
        && !(instance.weightsEnvironment ? ${name})
        && !(instance.model.environment ? ${name})
      ) "${option}.secrets: ${show name} is set in plain sight as well."
    ) instance.secrets
    ++ withoutDuplicates "${option}.secrets" "name it once" instance.secrets
    ++
      require (instance.secrets == [ ] || instance.environmentFile != null)
        "${option}.secrets: ${show instance.secrets} get no value, as ${option}.environmentFile is not set."
    ++ lib.optionals (instance.environmentFile != null) (
      ofPath "${option}.environmentFile" instance.environmentFile
    );

  model =
    option: instance:
    let
      inherit (instance.model) id path;
    in
    require (
      id != null || path != null
    ) "${option}.model: neither `id` nor `path` is set, so there is nothing to serve."
    ++ require (
      id == null || (id != "" && !(hasPrefix "-" id))
    ) "${option}.model.id: ${show id} is not a Hugging Face id."
    ++ lib.optionals (path != null) (ofPath "${option}.model.path" path)
    ++ variables "${option}.model.environment" instance.model.environment;
in
{
  ofFolder = ofPath;

  ofInstance =
    option: name: instance: launch:
    require (isName name) "${option}: ${show name} cannot be part of a unit's name."
    ++ require (isName instance.arm) "${option}.arm: ${show instance.arm} cannot be part of a container's name."
    ++ require (isImage instance.image) "${option}.image: ${show instance.image} is not the name of an image."
    ++ require (
      instance.cacheFormat != "" && !(lib.hasInfix "/" instance.cacheFormat)
    ) "${option}.cacheFormat: ${show instance.cacheFormat} cannot be part of a folder's name."
    ++ ofMountable "${option}.cacheFormat" instance.cacheFormat
    ++ ofPath "${option}.metalHome" instance.metalHome
    ++ model option instance
    ++ cards option instance
    ++ flags "${option}.settings" instance.settings
    ++ digits "${option}.settings" instance.settings
    ++ digits "${option}.tt" instance.tt
    ++ variables "${option}.environment" instance.environment
    ++ variables "${option}.weightsEnvironment" instance.weightsEnvironment
    ++ secrets option instance
    ++ require (isAddress instance.address) "${option}.address: ${show instance.address} is not an IP address."
    ++ concatMap (
      argument:
      require (
        !(characters.containsAny characters.noncharacters argument)
      ) "${option}: ${show argument} holds a Unicode noncharacter, and systemd drops a line that does."
    ) launch.arguments
    ++ concatLists (
      lib.imap0 (index: overlay "${option}.overlays[${toString index}]") instance.overlays
    )
    ++ withoutDuplicates "${option}.overlays" "one target takes one source" (
      map (o: o.target) instance.overlays
    );

  # first, second: { path, instance, launch }
  ofPair =
    { first, second }:
    let
      lower = map lib.toLower;
      shared = filter (source: elem source (lower second.launch.sources)) (lower first.launch.sources);
      named = one: one.instance.cards.ids != [ ];
      any' =
        address:
        elem address [
          "0.0.0.0"
          "::"
        ];
      a = first.instance.address;
      b = second.instance.address;
    in
    require (
      shared == [ ]
    ) "${second.path}.cards: ${show shared} belongs to ${first.path} as well; a card has one engine."
    ++
      require (named first == named second)
        "${second.path}.cards.ids: ${show second.instance.cards.ids} against ${show first.instance.cards.ids} of ${first.path}; whether they share a card cannot be known. Name the cards of both."
    ++ require (
      first.instance.port != second.instance.port || !(a == b || any' a || any' b)
    ) "${second.path}.port: ${toString second.instance.port} is the port of ${first.path} as well."
    ++
      require (first.instance.arm != second.instance.arm)
        "${second.path}.arm: ${show second.instance.arm} is the arm of ${first.path} as well; containers have one name each.";

  warningsOf =
    option: instance:
    optional (!(hasDigest instance.image))
      "${option}.image: ${show instance.image} has no digest (@sha256:…), so the tag may name another image tomorrow."
    ++ map (
      key:
      "${option}.tt.${key}: the Tenstorrent plugin ignores keys that it does not know, and this one is not on its list."
    ) (filter (key: !(elem key knownTt)) (attrNames instance.tt))
    ++
      optional (instance.environmentFile != null && hasPrefix builtins.storeDir instance.environmentFile)
        "${option}.environmentFile: ${show instance.environmentFile} is in the Nix store, which everyone can read.";
}
