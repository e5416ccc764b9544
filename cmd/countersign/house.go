package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/graph"
	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/auth"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/builtin"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/demo"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/guard"
	"github.com/countersign/countersign/internal/ingest"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/mcp"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/once"
	"github.com/countersign/countersign/internal/provider"
	"github.com/countersign/countersign/internal/remote"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/webhook"
	"github.com/countersign/countersign/internal/world"
)

// house is every room over one database.
type house struct {
	config  config
	log     *slog.Logger
	world   world.World
	bell    *live.Hub
	store   *store.Store
	access  *access.Access
	content *content.Content
	library *library.Library
	tools   *tool.Box
	agent   *agent.Agent
	remote  *remote.Room
	budgets *budget.Room
	notify  *notify.Room
	counted *prometheus.Registry // what /metrics shows
	servers *mcp.Connector
	chat    *chat.Chat
	auth    *auth.Auth
	proofs  *audit.Log
	keys    *once.Keys
	secrets *guard.Current
}

// open builds the house. Whoever opened it closes it.
func open(ctx context.Context, c config, log *slog.Logger, o store.Options) (*house, error) {
	secrets := &guard.Current{}
	secrets.Always(c.secrets()...)
	log = slog.New(secrets.Handler(log.Handler()))
	h := &house{config: c, log: log, secrets: secrets, world: world.Real(), bell: &live.Hub{}}
	keys, err := store.ParseKeys(c.EncryptionKey)
	if err != nil {
		return nil, fmt.Errorf("COUNTERSIGN_ENCRYPTION_KEY: %w", err)
	}
	o.Keys, o.Bell, o.Logger = keys, h.bell, log
	if h.store, err = store.Open(ctx, c.DatabaseURL, o); err != nil {
		return nil, err
	}
	if err := h.furnish(); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// furnish joins use cases and adapters.
func (h *house) furnish() error {
	models := provider.New(provider.Options{})
	host, err := h.host()
	if err != nil {
		return err
	}
	h.proofs = audit.NewLog(h.store)
	h.keys = &once.Keys{Store: h.store, World: h.world, Bell: h.bell, Log: h.log}
	h.access = &access.Access{Store: h.store, World: h.world, File: h.config.Settings}
	h.auth = auth.New(accounts{h.access}, h.world, h.config.AdminToken)
	hooks := make([]content.Hook, len(h.config.ContentHooks))
	for i, target := range h.config.ContentHooks {
		if hooks[i], err = webhook.New(target, h.world.Now); err != nil {
			return fmt.Errorf("contentHooks: %w", err)
		}
	}
	h.content = content.New(h.store, h.world, hooks...)
	shipped, err := tool.New(builtin.All(h.content, chat.Points{Store: h.store, Content: h.content})...)
	if err != nil {
		return err
	}
	h.servers = mcp.New(mcp.Options{NoPrograms: h.config.MCPPrograms == "off", Networks: h.config.MCPNetworks, Version: version(), Log: h.log})
	h.remote = &remote.Room{Store: h.store, Connector: h.servers, World: h.world, Log: h.log}
	h.tools = tool.NewBox(shipped, h.remote)
	h.library = &library.Library{
		Store: h.store, World: h.world, Accounts: h.access,
		Fetcher: ingest.New(host).Beside(h.config.GitHubHosts...), EnterpriseHosts: h.config.GitHubHosts,
		KnownTool: func(ctx context.Context, name string) (bool, error) {
			tools, err := h.tools.Now(ctx)
			if err != nil {
				return false, err
			}
			_, known := tools.Spec(name)
			return known, nil
		},
		CheckProvider: func(p library.Provider) error {
			_, err := models.Open(p)
			return err
		},
	}
	h.counted = prometheus.NewRegistry()
	h.budgets = &budget.Room{Store: h.store, Known: h.spends, World: h.world}
	h.notify = h.notifier()
	h.agent = agent.New(agent.Parts{
		Store: h.store, Skills: h.library, People: h.access, Settings: h.access, Content: h.content,
		Models: models, Tools: h.tools, Budgets: h.budgets, Meter: newMeter(h.counted), World: h.world, Bell: h.bell, SkillID: graph.SkillID, Log: h.log, Secrets: h.secrets,
	})
	h.chat = &chat.Chat{
		Store: h.store, Runtime: h.agent, Runs: h.store, Skills: h.library, People: h.access, Settings: h.access, Content: h.content,
		World: h.world, Bell: h.bell, Log: h.log,
	}
	return nil
}

// notifier tells other servers of runs.
func (h *house) notifier() *notify.Room {
	return &notify.Room{
		Store: h.store, Sender: webhook.NewSender(h.config.NotifyNetworks), World: h.world, Bell: h.bell, Log: h.log,
		Names:    notify.Names{Run: graph.RunID, User: graph.UserID, Configuration: graph.ConfigurationID, Conversation: graph.ConversationID, Delivery: graph.DeliveryID},
		Settings: h.access, Meter: newPostMeter(h.counted, h.store.Untold),
	}
}

// spends says whether there is somebody or something that a budget could be for.
func (h *house) spends(ctx context.Context, scope budget.Scope, subject uuid.UUID) (bool, error) {
	var err error
	if scope == budget.OfUser {
		_, err = h.store.User(ctx, subject)
	} else {
		_, err = h.store.Configuration(ctx, subject)
	}
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// host is what sources are read from: the demo's repository, made in memory, and for
// everybody else the mirror if there is one (RULES S13), GitHub otherwise (RULES S2).
func (h *house) host() (ingest.Host, error) {
	bundled, err := ingest.Memory(demo.Owner, demo.Repository, demo.Files())
	if err != nil {
		return nil, err
	}
	otherwise := ingest.Mirror(h.config.GitMirror)
	if h.config.GitMirror == "" {
		if otherwise, err = h.github(); err != nil {
			return nil, err
		}
	}
	return ingest.ByOwner(map[string]ingest.Host{demo.Owner: bundled}, otherwise), nil
}

func (h *house) github() (ingest.Host, error) {
	o := ingest.GitHubOptions{Hosts: h.config.GitHubHosts, Networks: h.config.GitHubNetworks, Now: h.world.Now}
	if h.config.GitHubProxy != "" {
		proxy, err := url.Parse(h.config.GitHubProxy)
		if err != nil {
			return nil, errors.New("githubProxy is no URL") // it may hold a password
		}
		o.Proxy = proxy
	}
	host, err := ingest.GitHub(o)
	if err != nil {
		return nil, fmt.Errorf("reading GitHub: %w", err)
	}
	return host, nil
}

// listen wakes this process for what others commit, until ctx ends: notifications on
// PostgreSQL, the file's version on SQLite.
func (h *house) listen(ctx context.Context) error {
	if channel := h.store.Channel(); channel != "" {
		return live.ListenPostgres(ctx, h.config.DatabaseURL, channel, h.bell, h.log)
	}
	version, stop, err := h.store.Watch(ctx)
	if err != nil {
		return err
	}
	live.Poll(ctx, live.Glance, version, h.bell, h.log)
	return stop()
}

func (h *house) close() {
	if h.servers != nil {
		h.servers.Close()
	}
	if err := h.store.Close(); err != nil {
		h.log.Error("closing the database failed", slog.Any("error", err))
	}
}
