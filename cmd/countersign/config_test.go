package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

func TestReadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("addr: 0.0.0.0:1\norigins: [https://chat.example.org]\nsettings: {skills.maxBytes: \"1000\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	t.Run("nothing set: embedded database and the demo", func(t *testing.T) {
		c, err := readConfig(env())
		if err != nil || c.DatabaseURL != "sqlite:countersign.db" || c.Demo != "on" || c.Addr != "127.0.0.1:8080" {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("a database of one's own has no demo unless it is asked for", func(t *testing.T) {
		c, err := readConfig(env("COUNTERSIGN_DATABASE_URL", "sqlite:x.db"))
		if err != nil || c.Demo != "off" {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("the environment wins over the file", func(t *testing.T) {
		c, err := readConfig(env("COUNTERSIGN_CONFIG", file, "COUNTERSIGN_ADDR", "127.0.0.1:2"))
		if err != nil || c.Addr != "127.0.0.1:2" || len(c.Origins) != 1 || c.Settings["skills.maxBytes"] != "1000" {
			t.Errorf("%+v, %v", c, err)
		}
	})

	for name, tt := range map[string]struct {
		env  func(string) string
		says string
	}{
		"PostgreSQL needs a key":   {env("COUNTERSIGN_DATABASE_URL", "postgres://x"), "COUNTERSIGN_ENCRYPTION_KEY is required"},
		"the demo is on or off":    {env("COUNTERSIGN_DEMO", "perhaps"), "must be on or off"},
		"a file that is not there": {env("COUNTERSIGN_CONFIG", file+"x"), "COUNTERSIGN_CONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readConfig(tt.env); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}

	t.Run("S2 the file adds GitHub Enterprise hosts, their networks and a proxy", func(t *testing.T) {
		text := "githubHosts: [Git.Example.com]\ngithubNetworks: [10.1.0.0/16]\ngithubProxy: http://proxy.example.com:3128\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(env("COUNTERSIGN_CONFIG", file))
		if err != nil || len(c.GitHubNetworks) != 1 || !slices.Equal(c.GitHubHosts, []string{"git.example.com"}) {
			t.Fatalf("%+v, %v", c, err)
		}
		h := &house{config: c}
		if _, err := h.host(); err != nil {
			t.Error(err)
		}
		h.config.GitHubHosts = []string{"10.0.0.1"}
		if _, err := h.host(); err == nil || !strings.Contains(err.Error(), "10.0.0.1") {
			t.Errorf("got %v", err)
		}
		h.config.GitMirror = t.TempDir()
		if _, err := h.host(); err != nil {
			t.Errorf("with a mirror GitHub is not read: %v", err)
		}
	})
	t.Run("S2 a proxy that is none is refused without being repeated", func(t *testing.T) {
		for _, text := range []string{"http://user:hunter2@%zz", "socks5://user:hunter2@proxy"} {
			h := &house{config: config{GitHubProxy: text}}
			if _, err := h.host(); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		}
	})

	t.Run("an unknown key of the file is named", func(t *testing.T) {
		if err := os.WriteFile(file, []byte("adr: x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readConfig(env("COUNTERSIGN_CONFIG", file)); err == nil || !strings.Contains(err.Error(), "adr") {
			t.Errorf("got %v", err)
		}
	})
}
