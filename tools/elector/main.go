// elector is a candidate for a Lease, on client-go's leader election. It does nothing with the claim but say that
// it has it.
//
// Standard output gets one JSON object per line: `started` and `stopped` leading, `released` once the Lease is given
// back, `leader` when somebody else is seen to lead. Standard input takes one order per line: `release` gives the
// Lease back (if held) and stands down, `stand` stands again, `quit` releases and ends. When standard input ends,
// the program ends on the spot, as if it were killed.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	var c candidate
	kubeconfig := flag.String("kubeconfig", "", "where the server is and who asks")
	flag.StringVar(&c.namespace, "namespace", "kube-system", "namespace of the Lease")
	flag.StringVar(&c.name, "name", "", "name of the Lease")
	flag.StringVar(&c.identity, "identity", "", "who stands")
	flag.DurationVar(&c.lease, "lease-duration", 15*time.Second, "others wait so long before they take over")
	flag.DurationVar(&c.renew, "renew-deadline", 10*time.Second, "the leader gives up after so long without renewal")
	flag.DurationVar(&c.retry, "retry-period", 2*time.Second, "between two attempts")
	flag.Parse()
	klog.SetOutput(os.Stderr)

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err, "kubeconfig %q", *kubeconfig)
	// One request that hangs must not cost the claim.
	config.Timeout = max(time.Second, c.renew/2)
	clients, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "leader-election"))
	must(err, "client")
	c.client = clients.CoordinationV1()
	must(c.check(), "flags")

	standing := c.stand(context.Background())
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		switch orders.Text() {
		case "release":
			standing.down()
		case "stand":
			standing.down()
			standing = c.stand(context.Background())
		case "quit":
			standing.down()
			return
		default:
			must(fmt.Errorf("there are release, stand and quit"), "order %q", orders.Text())
		}
	}
}

func must(err error, format string, args ...any) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "elector: %s: %v\n", fmt.Sprintf(format, args...), err)
		os.Exit(1)
	}
}
