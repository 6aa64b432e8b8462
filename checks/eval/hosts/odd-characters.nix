# Every character that some layer between a configuration and an engine might read as its own.
{
  imports = [ ../../../modules/tenstorrent-serving.nix ];
  services.tenstorrent-serving = {
    cacheDir = "/srv/with blank/100%/$HOME/\\n/ä";
    instances."odd.1_x-y" = {
      enable = true;
      image = "registry.example/engine@sha256:4444444444444444444444444444444444444444444444444444444444444444";
      cacheFormat = "with blank; %n $x";
      model = {
        path = "/srv/'models'/100%/$model";
        servedName = "näme \"quoted\" ; %i $PATH";
      };
      mesh = "P150";
      settings = {
        chat-template = "{% if x %}$y\n\t\"z\" \\ ' ; é{% endif %}";
        empty = "";
        dash = "-1";
        list = [
          ";"
          "%%"
          "$$"
          ""
          "--x"
          1.5e-5
        ];
        table = {
          "key \"with\" quotes" = "\\%$\n";
          number = 2.0;
          nested.list = [
            true
            "é"
          ];
        };
      };
      tt.trace_mode = "100% $all";
      environment = {
        PERCENT = "100%";
        DOLLAR = "$HOME \${HOME} $$";
        QUOTES = "'\"`";
        BACKSLASH = "\\ \\n \\x41";
        SEMICOLON = ";";
        EMPTY = "";
        LINES = "one\ntwo\r\n\tthree";
        UMLAUT = "äöü 漢字 😀";
      };
    };
  };
}
