// The receiver of the OpenTelemetry Collector, over gRPC and HTTP, that writes what it is told as lines of JSON.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

// Lines are written whole, whoever writes them.
type lines struct {
	sync.Mutex
	file *os.File
}

func (l *lines) write(line []byte, err error) error {
	if err != nil {
		return err
	}
	l.Lock()
	defer l.Unlock()
	_, err = l.file.Write(append(line, '\n'))
	return err
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// Arguments: the address for gRPC, the one for HTTP, the file.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	out := &lines{file: must(os.Create(os.Args[3]))}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	protocols := map[string]any{
		"grpc": map[string]any{"endpoint": os.Args[1]},
		"http": map[string]any{"endpoint": os.Args[2]},
	}
	if err := confmap.NewFromStringMap(map[string]any{"protocols": protocols}).Unmarshal(config); err != nil {
		log.Fatal(err)
	}
	settings := receiver.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		BuildInfo:         component.NewDefaultBuildInfo(),
	}
	traces := must(consumer.NewTraces(func(_ context.Context, told ptrace.Traces) error {
		return out.write((&ptrace.JSONMarshaler{}).MarshalTraces(told))
	}))
	metrics := must(consumer.NewMetrics(func(_ context.Context, told pmetric.Metrics) error {
		return out.write((&pmetric.JSONMarshaler{}).MarshalMetrics(told))
	}))
	host := componenttest.NewNopHost()
	for _, started := range []component.Component{
		must(factory.CreateTraces(ctx, settings, config, traces)),
		must(factory.CreateMetrics(ctx, settings, config, metrics)),
	} {
		if err := started.Start(ctx, host); err != nil {
			log.Fatal(err)
		}
	}
	log.Print("ready")
	<-ctx.Done()
}
